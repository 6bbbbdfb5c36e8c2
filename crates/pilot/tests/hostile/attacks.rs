use crate::clients::ATTACKS;
use crate::stage::Stage;

#[test]
fn try_all() {
    for attack in ATTACKS {
        Stage::open().attack(attack.name);
    }
}
