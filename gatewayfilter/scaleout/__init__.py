"""Scale-out: what several machines share, and the processing of recorded traffic on many cores."""
