"""Results that a specification permits: the reachable set, a proven enclosure, a witness."""
