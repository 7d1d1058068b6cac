//! One request at a time for a thing that changes: asked again once the answer is older than the thing.

/// Whether an answer is awaited, and whether it will be out of date.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct SingleFlight {
    is_in_flight: bool,
    is_stale: bool,
}

impl SingleFlight {
    /// Notes that the thing changed; returns whether to ask now.
    pub(crate) fn request(&mut self) -> bool {
        self.is_stale = self.is_in_flight;
        !std::mem::replace(&mut self.is_in_flight, true)
    }

    /// Notes that the answer is there; returns whether to ask again.
    pub(crate) fn complete(&mut self) -> bool {
        self.is_in_flight = std::mem::take(&mut self.is_stale);
        self.is_in_flight
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_changes_during_a_request_are_one_request_after_it() {
        let mut flight = SingleFlight::default();
        assert_eq!([flight.request(), flight.request(), flight.request()], [true, false, false]);
        assert_eq!([flight.complete(), flight.complete()], [true, false]);
        assert!(flight.request());
    }
}
