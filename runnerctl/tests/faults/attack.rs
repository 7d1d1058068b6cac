//! What an agent tries against its runner: socket, state, records, guard, environment, claims. Rows 86 to 94.
