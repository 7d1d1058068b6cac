//! State that is damaged, missing, of another version, or half written by a power cut. Rows 55 and 64 to 70.
