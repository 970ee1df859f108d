// Replaced by the kit.
