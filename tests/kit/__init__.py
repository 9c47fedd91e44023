"""What our own tests are written with: descriptors by the manual's fields, and a scene that runs one instruction."""
