//! One request at a time for a thing that changes: asked again once the answer is older than the thing.

/// Whether an answer is awaited, and whether it will be out of date.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct SingleFlight {
    is_out: bool,
    is_stale: bool,
}

impl SingleFlight {
    /// Notes that the thing changed; returns whether to ask now.
    pub(crate) fn want(&mut self) -> bool {
        self.is_stale = self.is_out;
        !std::mem::replace(&mut self.is_out, true)
    }

    /// Notes that the answer is there; returns whether to ask again.
    pub(crate) fn arrived(&mut self) -> bool {
        self.is_out = std::mem::take(&mut self.is_stale);
        self.is_out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_changes_during_a_request_are_one_request_after_it() {
        let mut flight = SingleFlight::default();
        assert_eq!([flight.want(), flight.want(), flight.want()], [true, false, false]);
        assert_eq!([flight.arrived(), flight.arrived()], [true, false]);
        assert!(flight.want());
    }
}
