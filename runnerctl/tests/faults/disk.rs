//! A disk that is full, slow, read-only or failing, and too few handles. Rows 42, 43, 48 to 54 and 56 to 63.
