//! Each case is a function that takes an agent, and a test for each of them.

/// Makes tests of cases: one for each agent whose service enforces an answer.
macro_rules! with_each_agent {
    ($($case:ident),+ $(,)?) => {
        mod codex {
            $(#[test] fn $case() { super::$case($crate::real::agent::RealAgent::Codex); })+
        }
        mod claude {
            $(#[test] fn $case() { super::$case($crate::real::agent::RealAgent::Claude); })+
        }
    };
}

mod agent;
mod answers;
mod choice;
mod hermetic;
mod kills;
mod quick_start;
mod services;
mod sessions;
mod silence;
mod stage;
