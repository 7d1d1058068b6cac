//! What the fuzz targets do with their input. An ordinary test, `runnerd/tests/hostile.rs`, runs the same functions
//! over the checked-in corpus.

pub mod bodies;
