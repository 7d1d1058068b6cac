//! Whatever a program prints. Rows 36 to 41 and 44.
