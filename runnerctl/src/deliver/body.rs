//! Updates the runner's section of a description, keeping what people wrote around it.

use protocol::delivery::{DESCRIPTION_BEGINS, DESCRIPTION_ENDS};

/// Returns a description with the runner's section replaced and the rest unchanged; `None` if a person has removed the
/// section.
pub(crate) fn replace_own_part(description: &str, own_part: &str) -> Option<String> {
    // Forges store line endings as browsers send them.
    let before = description.replace("\r\n", "\n");
    let (head, rest) = before.split_once(DESCRIPTION_BEGINS)?;
    let (_, tail) = rest.split_once(DESCRIPTION_ENDS)?;
    Some(format!("{head}{}{tail}", own_part.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_wrote_around_it_stays() {
        let own = |text: &str| format!("{DESCRIPTION_BEGINS}\n{text}\n{DESCRIPTION_ENDS}\n");
        let before = format!("Closes #4\r\n\r\n{}\nReviewed with Bob.", own("old"));
        let after = replace_own_part(&before, &own("new")).expect("the part is there");
        assert_eq!(after, format!("Closes #4\n\n{}\n\nReviewed with Bob.", own("new").trim_end()));
        assert_eq!(replace_own_part(&own("same"), &own("same")), Some(own("same")));
    }

    #[test]
    fn a_description_that_a_person_has_made_their_own_is_left_alone() {
        assert_eq!(replace_own_part("All mine.", "own"), None);
        assert_eq!(replace_own_part(DESCRIPTION_BEGINS, "own"), None);
    }
}
