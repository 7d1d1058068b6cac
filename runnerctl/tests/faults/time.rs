//! Clocks that jump, machines that sleep, daemons that are stopped. Rows 45 to 47.
