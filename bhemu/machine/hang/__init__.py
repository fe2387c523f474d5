"""Which agent waits for which, which could release it, and the proof that none ever will."""
