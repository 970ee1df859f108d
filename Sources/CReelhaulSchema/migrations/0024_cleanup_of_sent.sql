-- What uploads and copies have sent to a server is ended there without the storage of the source, which may be gone.
update cleanup set storage = ''
 where storage <> '' and kind in ('upload', 'copy') and spec ->> 'destination' !~* '^storage:';
