//! Which hook to call for a change of a run's state. A change that a person has requested calls none.

use protocol::hook::HookName;
use protocol::words::RunStatus;

/// Returns the hook for a run that has reached this state; `None` while it continues on its own, or if it was paused.
pub fn hook_for_state(state: RunStatus) -> Option<HookName> {
    match state {
        RunStatus::Completed => Some(HookName::OnComplete),
        RunStatus::Stuck => Some(HookName::OnStuck),
        RunStatus::Limit | RunStatus::TimedOut | RunStatus::Failed | RunStatus::Cancelled | RunStatus::Held => {
            Some(HookName::OnStop)
        }
        RunStatus::Queued | RunStatus::Running | RunStatus::Waiting | RunStatus::Paused => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_terminal_state_and_every_hold_calls_one_hook() {
        for &state in RunStatus::ALL {
            let stops = state.is_terminal() || state == RunStatus::Held;
            assert_eq!(hook_for_state(state).is_some(), stops, "{state}");
        }
    }
}
