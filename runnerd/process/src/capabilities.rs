//! What a machine offers to contain programs: a value, determined by `probe`.

use protocol::words::Containment;

use supervisor::{GroupPlace, NamespaceMode};

/// What is put around every program, in addition to the walk.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ProcessIsolation {
    /// The folder in which its control group is created.
    pub group_place: Option<GroupPlace>,
    /// How its PID namespace is created.
    pub namespaces: Option<NamespaceMode>,
}

impl ProcessIsolation {
    pub(super) fn level(&self) -> Containment {
        match (&self.namespaces, &self.group_place) {
            (Some(_), _) => Containment::Pidns,
            (None, Some(_)) => Containment::Cgroup,
            (None, None) => Containment::Walk,
        }
    }
}

/// A level that is not in use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnusedLevel {
    /// The level.
    pub level: Containment,
    /// Why it is not in use.
    pub why: String,
    /// What a person can do to enable it.
    pub hint: String,
}

/// The machine's means that are in use; by default nothing but the walk.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostCapabilities {
    pub(super) isolation: ProcessIsolation,
    pub(super) unused_levels: Vec<UnusedLevel>,
}

impl HostCapabilities {
    /// Returns the strongest level, which applies to every program that needs no privileges.
    pub fn level(&self) -> Containment {
        self.isolation.level()
    }

    /// Returns the level for a program; see [`ProgramSpec::no_new_privs`](super::spec::ProgramSpec::no_new_privs).
    pub fn level_for(&self, no_new_privs: bool) -> Containment {
        self.isolation_for(no_new_privs).level()
    }

    /// Returns the levels that are not in use, the weakest first.
    pub fn unused_levels(&self) -> &[UnusedLevel] {
        &self.unused_levels
    }

    pub(super) fn isolation_for(&self, no_new_privs: bool) -> ProcessIsolation {
        let is_usable = |namespaces: &NamespaceMode| no_new_privs || *namespaces == NamespaceMode::Privileged;
        ProcessIsolation {
            group_place: self.isolation.group_place.clone(),
            namespaces: self.isolation.namespaces.filter(is_usable),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offer(namespaces: Option<NamespaceMode>) -> HostCapabilities {
        HostCapabilities { isolation: ProcessIsolation { group_place: None, namespaces }, unused_levels: Vec::new() }
    }

    #[test]
    fn nothing_found_is_a_walk() {
        assert_eq!(HostCapabilities::default().level(), Containment::Walk);
        assert!(Containment::Walk < Containment::Cgroup && Containment::Cgroup < Containment::Pidns);
    }

    #[test]
    fn program_that_needs_privileges_is_in_no_user_namespace() {
        let user = offer(Some(NamespaceMode::WithUser));
        let privileged = offer(Some(NamespaceMode::Privileged));
        assert_eq!([user.level_for(true), user.level_for(false)], [Containment::Pidns, Containment::Walk]);
        assert_eq!([privileged.level_for(true), privileged.level_for(false)], [Containment::Pidns; 2]);
    }
}
