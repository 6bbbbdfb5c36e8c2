//! The servers that tests start behave as the tests expect.

mod postgres;
