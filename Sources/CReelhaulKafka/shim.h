#pragma once
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

/// `rd_kafka_producev` with fixed types. The bytes are copied. On success librdkafka owns `headers` (may be NULL); on
/// failure the caller still owns them.
static inline rd_kafka_resp_err_t rh_kafka_produce(rd_kafka_t *client, rd_kafka_topic_t *topic, int32_t partition,
                                                   const void *key, size_t key_size, const void *value,
                                                   size_t value_size, rd_kafka_headers_t *headers, void *opaque) {
  if (headers)
    return rd_kafka_producev(client, RD_KAFKA_V_RKT(topic), RD_KAFKA_V_PARTITION(partition),
                             RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_KEY(key, key_size),
                             RD_KAFKA_V_VALUE((void *)value, value_size), RD_KAFKA_V_HEADERS(headers),
                             RD_KAFKA_V_OPAQUE(opaque), RD_KAFKA_V_END);
  return rd_kafka_producev(client, RD_KAFKA_V_RKT(topic), RD_KAFKA_V_PARTITION(partition),
                           RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_KEY(key, key_size),
                           RD_KAFKA_V_VALUE((void *)value, value_size), RD_KAFKA_V_OPAQUE(opaque), RD_KAFKA_V_END);
}
