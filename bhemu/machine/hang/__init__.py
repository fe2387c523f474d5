"""Who waits for whom, who could release it, and the proof that nobody ever will."""
