use crate::workflow::{Rules, source::Finding};
pub fn check(_rules: &Rules) -> Vec<Finding> {
    Vec::new()
}
