//! What the fuzz targets do with their input. The same functions are run over the checked-in corpus by an ordinary test,
//! `runnerd/tests/hostile.rs`.

pub mod bodies;
