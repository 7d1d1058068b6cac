//! At most one request in flight for something that changes: it is sent again if a change came before the reply.

/// Whether a request is in flight, and whether its reply will be outdated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct SingleFlight {
    is_in_flight: bool,
    is_stale: bool,
}

impl SingleFlight {
    /// Records a change; returns whether to send a request now.
    pub(crate) fn request(&mut self) -> bool {
        self.is_stale = self.is_in_flight;
        !std::mem::replace(&mut self.is_in_flight, true)
    }

    /// Records the reply; returns whether to send another request.
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
