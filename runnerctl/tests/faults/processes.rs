//! How programs end, and what they try to leave behind. Rows 1 to 35.

mod cancels;
mod ends;
mod leftovers;
mod reruns;
mod slow;
mod starts;
mod stops;
mod supervisors;
