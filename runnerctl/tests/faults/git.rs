//! What happens to the repository under the runner: locks, rewritten history, missing refs, configuration that runs programs, names and files that git does not take. Rows 71 to 85.
