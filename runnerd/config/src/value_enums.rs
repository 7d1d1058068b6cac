//! The values of configuration keys with a fixed set of choices.

use super::choice::choices;

choices! {
    /// How much the daemon's log contains.
    LogLevel {
        /// Nothing.
        Off = "off",
        /// What went wrong.
        Error = "error",
        /// What may go wrong, too.
        Warn = "warn",
        /// What was done, too.
        Info = "info",
        /// How it was done, too.
        Debug = "debug",
        /// Everything.
        Trace = "trace",
    }
}

choices! {
    /// What an iteration that ran out of time does to its run.
    TimeoutPolicy {
        /// The run ends.
        Stop = "stop",
        /// The run continues, and the iteration counts as a fault.
        Retry = "retry",
    }
}

choices! {
    /// How sessions divide planning and working.
    RolesMode {
        /// A session may do either.
        Auto = "auto",
        /// Planners do not touch code, workers do not decompose.
        Strict = "strict",
    }
}

choices! {
    /// What follows when an agent changed the guard's definition.
    ChangePolicy {
        /// Both the old and the new definition must pass.
        Both = "both",
        /// The change is only named.
        Report = "report",
        /// The accepted definition is restored before the guard runs.
        Revert = "revert",
    }
}

choices! {
    /// Where a run works.
    WorkspaceKind {
        /// In the work tree of the person who starts it.
        InPlace = "in-place",
        /// In its own workspace.
        Isolated = "isolated",
    }
}

choices! {
    /// Where a remote gets what belongs to a run beside its branch.
    PublishExtras {
        /// Below `refs/runner/`.
        Refs = "refs",
        /// As branches, for a remote that takes nothing else.
        Branches = "branches",
        /// Nowhere.
        Off = "off",
    }
}

choices! {
    /// Who reviews work that the guard has passed.
    ReviewPolicy {
        /// Nobody.
        Off = "off",
        /// A fresh agent session.
        Agent = "agent",
        /// A person.
        Human = "human",
    }
}
