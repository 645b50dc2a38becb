"""Device programs of convolutions and pooling."""
