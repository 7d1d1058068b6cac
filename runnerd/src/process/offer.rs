//! What a machine offers to hold programs with: a value, found by `probe`.

use protocol::words::Containment;

use supervisor::{GroupPlace, Namespaces};

/// What is put around every program, besides the walk that always is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Walls {
    /// Where its control group is made.
    pub place: Option<GroupPlace>,
    /// How its PID namespace is made.
    pub namespaces: Option<Namespaces>,
}

impl Walls {
    pub(super) fn level(&self) -> Containment {
        match (&self.namespaces, &self.place) {
            (Some(_), _) => Containment::Pidns,
            (None, Some(_)) => Containment::Cgroup,
            (None, None) => Containment::Walk,
        }
    }
}

/// A level that is not used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// Which.
    pub level: Containment,
    /// Why not.
    pub why: String,
    /// What a person can do to have it.
    pub raise: String,
}

/// What is used of what a machine offers; by default nothing but the walk.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Offer {
    pub(super) walls: Walls,
    pub(super) missing: Vec<Missing>,
}

impl Offer {
    /// Returns the strongest level, which is that of every program that needs no privileges.
    pub fn level(&self) -> Containment {
        self.walls.level()
    }

    /// Returns the level of a program; see [`Spec::no_new_privs`](super::Spec::no_new_privs).
    pub fn level_for(&self, no_new_privs: bool) -> Containment {
        self.walls_for(no_new_privs).level()
    }

    /// Returns the levels that are not used, the weakest first.
    pub fn missing(&self) -> &[Missing] {
        &self.missing
    }

    pub(super) fn walls_for(&self, no_new_privs: bool) -> Walls {
        let is_fit = |namespaces: &Namespaces| no_new_privs || *namespaces == Namespaces::Privileged;
        Walls { place: self.walls.place.clone(), namespaces: self.walls.namespaces.filter(is_fit) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offer(namespaces: Option<Namespaces>) -> Offer {
        Offer { walls: Walls { place: None, namespaces }, missing: Vec::new() }
    }

    #[test]
    fn nothing_found_is_a_walk() {
        assert_eq!(Offer::default().level(), Containment::Walk);
        assert!(Containment::Walk < Containment::Cgroup && Containment::Cgroup < Containment::Pidns);
    }

    #[test]
    fn program_that_needs_privileges_is_in_no_user_namespace() {
        let (user, privileged) = (offer(Some(Namespaces::WithUser)), offer(Some(Namespaces::Privileged)));
        assert_eq!([user.level_for(true), user.level_for(false)], [Containment::Pidns, Containment::Walk]);
        assert_eq!([privileged.level_for(true), privileged.level_for(false)], [Containment::Pidns; 2]);
    }
}
