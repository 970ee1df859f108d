// ReelhaulClient
