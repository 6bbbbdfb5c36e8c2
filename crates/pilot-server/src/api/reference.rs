//! The API's own description: for programs, and as a page for people.

use super::console;
use crate::api::answers::page;
use crate::app::App;
use crate::call::Answer;

pub fn get_openapi(app: &App) -> Answer {
    Ok(page("application/json", app.openapi.clone()))
}

pub fn get_docs(app: &App) -> Answer {
    Ok(console::document(app.docs.clone()))
}

pub fn get_docs_style(_: &App) -> Answer {
    Ok(page("text/css; charset=utf-8", include_str!("../openapi/page.css")))
}
