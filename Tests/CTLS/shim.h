#pragma once
// OpenSSL's servers, for origins of tests: its macros as functions, and the choice of a protocol.
#include <openssl/ssl.h>
#include <string.h>

static inline void rh_tls_limit_version(SSL_CTX *context, int highest) {
  // The lowest levels of security: or else the library refuses old versions by itself.
  SSL_CTX_set_security_level(context, 0);
  SSL_CTX_set_min_proto_version(context, 0);
  SSL_CTX_set_max_proto_version(context, highest);
}

/// Records that carry no bytes do not keep a reader waiting for the next one.
static inline void rh_tls_read_no_further(SSL *tls) { SSL_clear_mode(tls, SSL_MODE_AUTO_RETRY); }

static int rh_tls_choose(
    SSL *tls, const unsigned char **chosen, unsigned char *length, const unsigned char *offered, unsigned int count,
    void *protocol) {
  (void)tls;
  size_t wanted = strlen(protocol);
  for (unsigned int at = 0; at < count; at += 1 + offered[at]) {
    if (offered[at] != wanted || memcmp(offered + at + 1, protocol, wanted) != 0) continue;
    *chosen = offered + at + 1;
    *length = offered[at];
    return SSL_TLSEXT_ERR_OK;
  }
  return SSL_TLSEXT_ERR_ALERT_FATAL;
}

/// Speaks `protocol` (of ALPN) alone. The text must live as long as the context.
static inline void rh_tls_require(SSL_CTX *context, char *protocol) {
  SSL_CTX_set_alpn_select_cb(context, rh_tls_choose, protocol);
}
