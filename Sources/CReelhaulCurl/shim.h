#pragma once
// libcurl's variadic functions, as one typed function per kind of value.
#include <curl/curl.h>

_Static_assert(LIBCURL_VERSION_NUM >= 0x075700, "libcurl 7.87 or later: CURLOPT_QUICK_EXIT");
_Static_assert(sizeof(curl_off_t) == 8, "file offsets of 64 bits");

static inline CURLcode rh_easy_set_long(CURL *easy, CURLoption option, long value) {
  return (curl_easy_setopt)(easy, option, value);
}

static inline CURLcode rh_easy_set_string(CURL *easy, CURLoption option, const char *value) {
  return (curl_easy_setopt)(easy, option, value);
}

static inline CURLcode rh_easy_set_pointer(CURL *easy, CURLoption option, void *value) {
  return (curl_easy_setopt)(easy, option, value);
}

static inline CURLcode rh_easy_set_list(CURL *easy, CURLoption option, struct curl_slist *value) {
  return (curl_easy_setopt)(easy, option, value);
}

/// CURLOPT_WRITEFUNCTION and CURLOPT_HEADERFUNCTION.
static inline CURLcode rh_easy_set_receiver(CURL *easy, CURLoption option, curl_write_callback value) {
  return (curl_easy_setopt)(easy, option, value);
}

/// CURLOPT_READFUNCTION.
static inline CURLcode rh_easy_set_sender(CURL *easy, curl_read_callback value) {
  return (curl_easy_setopt)(easy, CURLOPT_READFUNCTION, value);
}

static inline CURLcode rh_easy_set_seek(CURL *easy, curl_seek_callback value) {
  return (curl_easy_setopt)(easy, CURLOPT_SEEKFUNCTION, value);
}

static inline CURLcode rh_easy_set_offset(CURL *easy, CURLoption option, curl_off_t value) {
  return (curl_easy_setopt)(easy, option, value);
}

static inline CURLcode rh_easy_set_opensocket(CURL *easy, curl_opensocket_callback value) {
  return (curl_easy_setopt)(easy, CURLOPT_OPENSOCKETFUNCTION, value);
}

static inline CURLcode rh_easy_set_closesocket(CURL *easy, curl_closesocket_callback value) {
  return (curl_easy_setopt)(easy, CURLOPT_CLOSESOCKETFUNCTION, value);
}

static inline CURLcode rh_easy_set_prereq(CURL *easy, curl_prereq_callback value) {
  return (curl_easy_setopt)(easy, CURLOPT_PREREQFUNCTION, value);
}

static inline CURLcode rh_easy_get_long(CURL *easy, CURLINFO info, long *value) {
  return (curl_easy_getinfo)(easy, info, value);
}

static inline CURLcode rh_easy_get_pointer(CURL *easy, CURLINFO info, void **value) {
  return (curl_easy_getinfo)(easy, info, value);
}

/// The socket of a finished transfer that the next transfer may reuse, or CURL_SOCKET_BAD. Valid while the handle is
/// in the multi handle.
static inline curl_socket_t rh_easy_socket(CURL *easy) {
  curl_socket_t value = CURL_SOCKET_BAD;
  (curl_easy_getinfo)(easy, CURLINFO_ACTIVESOCKET, &value);
  return value;
}

// A function of OpenSSL, which libcurl is built with.
extern int SSL_pending(const struct ssl_st *ssl);

/// Bytes that TLS has decrypted on the transfer's connection and libcurl has not read; 0 without TLS. Call it only in
/// a callback of the transfer.
static inline int rh_easy_tls_pending(CURL *easy) {
  struct curl_tlssessioninfo *tls = NULL;
  if ((curl_easy_getinfo)(easy, CURLINFO_TLS_SSL_PTR, &tls) != CURLE_OK || !tls || !tls->internals ||
      tls->backend != CURLSSLBACKEND_OPENSSL)
    return 0;
  return SSL_pending((const struct ssl_st *)tls->internals);
}

/// The file of trusted certificates that libcurl was built for, or NULL.
static inline const char *rh_default_ca_file(void) { return curl_version_info(CURLVERSION_NOW)->cainfo; }

static inline CURLMcode rh_multi_set_long(CURLM *multi, CURLMoption option, long value) {
  return (curl_multi_setopt)(multi, option, value);
}

static inline CURLMcode rh_multi_set_pointer(CURLM *multi, CURLMoption option, void *value) {
  return (curl_multi_setopt)(multi, option, value);
}

static inline CURLMcode rh_multi_set_socket_function(CURLM *multi, curl_socket_callback value) {
  return (curl_multi_setopt)(multi, CURLMOPT_SOCKETFUNCTION, value);
}

static inline CURLMcode rh_multi_set_timer_function(CURLM *multi, curl_multi_timer_callback value) {
  return (curl_multi_setopt)(multi, CURLMOPT_TIMERFUNCTION, value);
}

static inline CURLSHcode rh_share_set(CURLSH *share, curl_lock_data what) {
  return (curl_share_setopt)(share, CURLSHOPT_SHARE, what);
}
