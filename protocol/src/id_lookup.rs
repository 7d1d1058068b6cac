//! Finds what a person names by its id, or by a beginning that no other id has.

use crate::error::{ErrorData, ErrorKind};

/// More than one id begins with what was named.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{named}` matches more than one run: {}", ids.join(", "))]
pub struct AmbiguousId {
    /// What was named.
    pub named: String,
    /// The ids that begin so.
    pub ids: Vec<String>,
}

impl From<AmbiguousId> for ErrorData {
    fn from(error: AmbiguousId) -> Self {
        let refused = Self::new(ErrorKind::InvalidRequest, error.to_string()).hint("runnerctl queue --ended");
        refused.choice(Some(&error.named), error.ids.iter().map(String::as_str))
    }
}

/// Returns the item with this id, else the only one whose id begins with it; `None` if there is none.
pub fn find_by_id<T>(
    items: impl IntoIterator<Item = T>,
    id_of: impl Fn(&T) -> &str,
    named: &str,
) -> Result<Option<T>, AmbiguousId> {
    let mut matching: Vec<T> = items.into_iter().filter(|item| id_of(item).starts_with(named)).collect();
    if let Some(exact) = matching.iter().position(|item| id_of(item) == named) {
        return Ok(Some(matching.swap_remove(exact)));
    }
    if matching.len() > 1 {
        let ids = matching.iter().map(|item| id_of(item).to_owned()).collect();
        return Err(AmbiguousId { named: named.to_owned(), ids });
    }
    Ok(matching.pop())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exact_id_wins_and_a_beginning_must_be_unique() {
        let find = |named| find_by_id(["x-2", "x", "xy", "z-1"], |id| id, named).map_err(|error| error.to_string());
        assert_eq!(find("x"), Ok(Some("x")));
        assert_eq!(find("x-"), Ok(Some("x-2")));
        assert_eq!(find("a"), Ok(None));
        assert_eq!(find("z"), Ok(Some("z-1")));
        assert_eq!(find(""), Err("`` matches more than one run: x-2, x, xy, z-1".to_owned()));
    }
}
