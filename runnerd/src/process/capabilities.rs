//! What a machine offers to hold programs with: a value, found by `probe`.

use protocol::words::Containment;

use supervisor::{GroupPlace, NamespaceMode};

/// What is put around every program, besides the walk that always is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ProcessIsolation {
    /// Where its control group is made.
    pub group_place: Option<GroupPlace>,
    /// How its PID namespace is made.
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

/// A level that is not used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnusedLevel {
    /// Which.
    pub level: Containment,
    /// Why not.
    pub why: String,
    /// What a person can do to have it.
    pub hint: String,
}

/// What is used of what a machine offers; by default nothing but the walk.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostCapabilities {
    pub(super) isolation: ProcessIsolation,
    pub(super) unused_levels: Vec<UnusedLevel>,
}

impl HostCapabilities {
    /// Returns the strongest level, which is that of every program that needs no privileges.
    pub fn level(&self) -> Containment {
        self.isolation.level()
    }

    /// Returns the level of a program; see [`Spec::no_new_privs`](super::Spec::no_new_privs).
    pub fn level_for(&self, no_new_privs: bool) -> Containment {
        self.isolation_for(no_new_privs).level()
    }

    /// Returns the levels that are not used, the weakest first.
    pub fn unused_levels(&self) -> &[UnusedLevel] {
        &self.unused_levels
    }

    pub(super) fn isolation_for(&self, no_new_privs: bool) -> ProcessIsolation {
        let is_usable = |namespaces: &NamespaceMode| no_new_privs || *namespaces == NamespaceMode::Privileged;
        ProcessIsolation { group_place: self.isolation.group_place.clone(), namespaces: self.isolation.namespaces.filter(is_usable) }
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
        let (user, privileged) = (offer(Some(NamespaceMode::WithUser)), offer(Some(NamespaceMode::Privileged)));
        assert_eq!([user.level_for(true), user.level_for(false)], [Containment::Pidns, Containment::Walk]);
        assert_eq!([privileged.level_for(true), privileged.level_for(false)], [Containment::Pidns; 2]);
    }
}
