"""What ended a run too early: hangs, errors, programs that are refused; who caused it."""
