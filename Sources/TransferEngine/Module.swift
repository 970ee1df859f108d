// TransferEngine
