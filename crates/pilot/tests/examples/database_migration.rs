//! `examples/database-migration`, with a stand-in for psql.

use super::stage::{Stage, change_a_byte, sha256_of};
use crate::support::harness::Installation;

const FILE: &str = "work/0042-add-index.sql";
const SQL: &str = "CREATE INDEX orders_by_day ON orders (day);\n";

fn stage() -> Stage {
    let stage = Stage::new("database-migration", &["propose", "migrate"]);
    stage.stand_in("bin/psql", "");
    std::fs::write(stage.path(FILE), SQL).unwrap();
    stage
}

#[test]
fn the_approved_sql_is_run_on_the_approved_database() {
    let stage = stage();
    let [propose, work] = &stage.page()[..] else { panic!("the page has other blocks") };
    let id = stage.propose(propose);
    assert_eq!(stage.item(&id)["payload"]["sql"], SQL);
    stage.run("eli", work).expect(0);
    let (database, sql) = ("host=db.example dbname=orders user=migrator", sha256_of(&stage.path(FILE)));
    let options = "--no-psqlrc --set=ON_ERROR_STOP=1 --single-transaction";
    assert_eq!(stage.record(), format!("psql {options} --dbname {database} --file {sql}\n"));
    stage.succeeded(&id);
    stage.has_no_token();
}

/// What the gate hands over is a file to psql like any other.
#[test]
fn psql_itself_runs_the_approved_sql() {
    let stage = Stage::new("database-migration", &["propose", "migrate"]);
    let target = Installation::with_database();
    std::fs::write(stage.path(FILE), "CREATE TABLE orders (day date);\n\\echo migrated\n").unwrap();
    let there =
        |lines: &String| lines.replace("host=db.example dbname=orders user=migrator", target.database_url().unwrap());
    let [propose, work] = &stage.page().iter().map(there).collect::<Vec<_>>()[..] else { panic!("other blocks") };
    let id = stage.propose(propose);
    stage.run("eli", work).expect(0);
    stage.succeeded(&id);
    assert!(stage.report(&id).contains("migrated"), "{}", stage.report(&id));
}

#[test]
fn sql_with_one_byte_changed_is_not_run() {
    let stage = stage();
    let [propose, work] = &stage.page()[..] else { panic!("the page has other blocks") };
    let id = stage.propose(propose);
    change_a_byte(&stage.path(FILE));
    stage.run("eli", work).expect(1);
    stage.refused(&id, &["0042-add-index.sql: its bytes are not those that were approved"]);
}

#[test]
fn the_approved_sql_is_not_run_on_another_database() {
    let stage = stage();
    let [propose, work] = &stage.page()[..] else { panic!("the page has other blocks") };
    let id = stage.propose(propose);
    stage.run("eli", &work.replace("dbname=orders", "dbname=ledger")).expect(1);
    stage.refused(&id, &["word 5 of the command line is", "dbname=orders", "was approved"]);
}
