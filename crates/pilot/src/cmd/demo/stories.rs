//! What happened before someone starts the demo: what was proposed, and what people did about it.

use serde_json::{Value, json};

/// Who did what, and what they said or sent with it.
type Step = (&'static str, &'static str, &'static str);

pub(super) struct Story {
    pub title: &'static str,
    /// What makes it an emergency; empty if nothing does.
    incident: &'static str,
    risk: &'static str,
    purpose: &'static str,
    operation: &'static str,
    targets: &'static [&'static str],
    rollback_plan: &'static str,
    pub steps: &'static [Step],
}

impl Story {
    pub(super) fn payload(&self) -> Value {
        let mut payload = json!({
            "purpose": self.purpose,
            "operation": self.operation,
            "risk": self.risk,
            "rollback_plan": self.rollback_plan,
            "targets": self.targets,
        });
        if let Some(members) = payload.as_object_mut().filter(|_| !self.incident.is_empty()) {
            members.insert("incident".to_owned(), self.incident.into());
        }
        payload
    }
}

const SUBMIT: Step = ("ana", "submit", "");
const APPROVE: Step = ("ben", "approve", "");
const CLEAR: Step = ("sol", "clear", "for tonight");
const START: Step = ("eli", "start", "");

/// In the order of an approver's inbox: the first needs one approval and harms nobody.
pub(super) const PLANNED: &[Story] = &[
    Story {
        title: "Restart the billing workers to load the new tax table",
        incident: "",
        risk: "low",
        purpose: "The tax table for December is in place. Workers read it only when they start.",
        operation: "systemctl restart 'billing-worker@*'",
        targets: &["billing-01", "billing-02"],
        rollback_plan: "Restore /etc/billing/tax.toml from the backup and restart the workers.",
        steps: &[SUBMIT, ("ana", "comment", "The queue is empty after 18:00, so nothing is lost in between.")],
    },
    Story {
        title: "Rotate the root certificate of the payment gateway",
        incident: "",
        risk: "high",
        purpose: "The current root expires in six weeks. Partners trust the new one already.",
        operation: "rotate-ca --gateway payments --overlap 30d\nverify-chain --gateway payments --expect-root 2027",
        targets: &["gateway-a", "gateway-b"],
        rollback_plan: "rotate-ca --gateway payments --restore previous",
        steps: &[SUBMIT, APPROVE],
    },
    Story {
        title: "Move the nightly reports to the replica",
        incident: "",
        risk: "medium",
        purpose: "Reports slow down the primary between 02:00 and 03:00.",
        operation: "reports config set source replica-2",
        targets: &["reports", "replica-2"],
        rollback_plan: "reports config set source primary",
        steps: &[
            SUBMIT,
            ("bea", "return", "replica-2 is retired on Friday; please use replica-3."),
            ("ana", "edit", "reports config set source replica-3"),
            SUBMIT,
        ],
    },
    Story {
        title: "Raise the daily transfer limit for the year-end run",
        incident: "",
        risk: "medium",
        purpose: "The year-end run needs more than the daily limit.",
        operation: "limits set transfer.daily 5000000",
        targets: &["transfers"],
        rollback_plan: "limits set transfer.daily 1000000",
        steps: &[
            SUBMIT,
            APPROVE,
            CLEAR,
            START,
            ("eli", "heartbeat", "limit set on one of two regions"),
            ("eli", "succeed", "transfer.daily is 5000000 in both regions"),
        ],
    },
    Story {
        title: "Open port 5432 from the reporting subnet",
        incident: "",
        risk: "medium",
        purpose: "The new reporting server reads from the warehouse.",
        operation: "firewall allow 10.20.7.0/24 -> warehouse:5432",
        targets: &["firewall", "warehouse"],
        rollback_plan: "firewall remove 10.20.7.0/24 -> warehouse:5432",
        steps: &[SUBMIT, APPROVE],
    },
    Story {
        title: "Add an index to the orders table",
        incident: "",
        risk: "low",
        purpose: "The search for orders by customer takes four seconds.",
        operation: "CREATE INDEX CONCURRENTLY orders_by_customer ON orders (customer_id, created_at);",
        targets: &["orders"],
        rollback_plan: "DROP INDEX CONCURRENTLY orders_by_customer;",
        steps: &[SUBMIT, APPROVE, CLEAR],
    },
    Story {
        title: "Copy the customer archive to the new storage",
        incident: "",
        risk: "medium",
        purpose: "The old storage is switched off at the end of the month.",
        operation: "archive copy --from nas-1 --to store-2 --verify",
        targets: &["nas-1", "store-2"],
        rollback_plan: "archive remove --from store-2",
        steps: &[SUBMIT, APPROVE, CLEAR, START, ("eli", "heartbeat", "312 of 940 GB copied")],
    },
    Story {
        title: "Upgrade the message broker to 4.2",
        incident: "",
        risk: "medium",
        purpose: "Version 4.0 gets no security fixes after this month.",
        operation: "broker upgrade --to 4.2 --rolling",
        targets: &["broker-1", "broker-2", "broker-3"],
        rollback_plan: "broker downgrade --to 4.0 --rolling",
        steps: &[
            SUBMIT,
            APPROVE,
            CLEAR,
            START,
            ("eli", "fail", "broker-2 did not rejoin: its disk is full. broker-1 runs 4.2, the others 4.0."),
        ],
    },
    Story {
        title: "Switch the mail relay to the new provider",
        incident: "",
        risk: "low",
        purpose: "The contract with the old provider ends.",
        operation: "relay set upstream smtp.new-provider.example",
        targets: &["relay"],
        rollback_plan: "relay set upstream smtp.old-provider.example",
        steps: &[
            SUBMIT,
            APPROVE,
            CLEAR,
            START,
            ("eli", "fail", "the new provider refuses our address"),
            ("eli", "roll_back", ""),
        ],
    },
    Story {
        title: "Lower the cache lifetime of the price list",
        incident: "",
        risk: "low",
        purpose: "Customers see old prices for up to an hour.",
        operation: "cache set prices.ttl 60s",
        targets: &["shop"],
        rollback_plan: "cache set prices.ttl 3600s",
        steps: &[
            SUBMIT,
            ("bea", "approve", ""),
            CLEAR,
            START,
            ("eli", "fail", "the shop answered slowly: p95 went from 80 ms to 900 ms"),
            ("eli", "roll_back", ""),
            ("eli", "succeed", "lifetime is 3600 s again; p95 is 80 ms"),
        ],
    },
    Story {
        title: "Rewrite the addresses of imported customers",
        incident: "",
        risk: "medium",
        purpose: "The import of October put street and number into one field.",
        operation: "addresses split --import 2026-10 --commit",
        targets: &["customers"],
        rollback_plan: "addresses restore --import 2026-10",
        steps: &[
            SUBMIT,
            APPROVE,
            CLEAR,
            START,
            ("eli", "unknown", "The connection broke after 40 minutes. I cannot tell how many rows were committed."),
        ],
    },
    Story {
        title: "Delete the staging database of 2024",
        incident: "",
        risk: "low",
        purpose: "Nobody has connected to it for a year.",
        operation: "dropdb staging_2024",
        targets: &["staging"],
        rollback_plan: "Restore it from the last backup, which is kept until March.",
        steps: &[],
    },
    Story {
        title: "Give the support team read access to invoices",
        incident: "",
        risk: "medium",
        purpose: "Support answers questions about invoices without asking accounting.",
        operation: "grant read invoices to group support",
        targets: &["invoices"],
        rollback_plan: "revoke read invoices from group support",
        steps: &[SUBMIT, ("ben", "return", "Which invoices? Please limit this to the last two years.")],
    },
    Story {
        title: "Renew the certificate of the partner portal",
        incident: "",
        risk: "low",
        purpose: "The certificate expires in nine days.",
        operation: "portal certificate renew --days 90",
        targets: &["portal"],
        rollback_plan: "portal certificate restore previous",
        steps: &[
            SUBMIT,
            APPROVE,
            CLEAR,
            START,
            ("eli", "succeed", "valid for another 90 days"),
            ("bea", "accept", "Checked in a browser: the new certificate is served."),
        ],
    },
    Story {
        title: "Turn off two-factor sign-in for the sales team",
        incident: "",
        risk: "high",
        purpose: "Sales is at a trade fair without its hardware keys.",
        operation: "identity policy set sales.second_factor off",
        targets: &["identity"],
        rollback_plan: "identity policy set sales.second_factor on",
        steps: &[SUBMIT, ("bea", "reject", "Spare keys are at the front desk; no need to weaken sign-in.")],
    },
    Story {
        title: "Resize the log volume",
        incident: "",
        risk: "low",
        purpose: "The log volume is at 85 %.",
        operation: "lvextend --resizefs --size +200G /dev/vg0/logs",
        targets: &["log-01"],
        rollback_plan: "A volume cannot shrink while in use; the space stays allocated.",
        steps: &[SUBMIT, ("ana", "withdraw", "")],
    },
    Story {
        title: "Import the supplier list of the merged company",
        incident: "",
        risk: "medium",
        purpose: "Purchasing works with one list from December on.",
        operation: "suppliers import merged-2026-11.csv",
        targets: &["purchasing"],
        rollback_plan: "suppliers remove --import merged-2026-11",
        steps: &[SUBMIT, APPROVE, CLEAR, ("sol", "revoke", "The file contains bank details that nobody has checked.")],
    },
    Story {
        title: "Flush the address cache of the edge servers",
        incident: "",
        risk: "low",
        purpose: "Two edge servers still use the address of the old data centre.",
        operation: "edge cache flush --kind dns",
        targets: &["edge-3", "edge-4"],
        rollback_plan: "Not needed: the cache fills itself.",
        steps: &[SUBMIT, APPROVE, ("sol", "clear", "for a moment")],
    },
];

pub(super) const URGENT: &[Story] = &[
    Story {
        title: "Block the address range that floods the sign-in page",
        incident: "INC-2291: sign-in fails",
        risk: "medium",
        purpose: "Sign-in fails for one customer in three.",
        operation: "edge deny 203.0.113.0/24 --for 24h",
        targets: &["edge"],
        rollback_plan: "edge allow 203.0.113.0/24",
        steps: &[
            SUBMIT,
            CLEAR,
            START,
            ("eli", "succeed", "sign-in works again since 14:07"),
            ("ben", "ratify", "The range belongs to one hosting provider; no customer was locked out."),
            ("bea", "ratify", "Agreed."),
        ],
    },
    Story {
        title: "Restart the primary database",
        incident: "INC-2304: queries hang",
        risk: "high",
        purpose: "Queries hang.",
        operation: "systemctl restart postgresql",
        targets: &["db-1"],
        rollback_plan: "Fail over to db-2.",
        steps: &[
            SUBMIT,
            CLEAR,
            START,
            ("eli", "succeed", "restarted; queries answer"),
            ("ben", "condemn", "One query held a lock. Ending it would have been enough."),
            ("bea", "condemn", "The restart cost two minutes of orders."),
        ],
    },
    Story {
        title: "Disable the partner key that was posted in public",
        incident: "INC-2310: key in public",
        risk: "high",
        purpose: "A partner's key is in a public repository.",
        operation: "keys disable partner-0042",
        targets: &["partner-api"],
        rollback_plan: "Issue a new key; the old one stays disabled.",
        steps: &[
            SUBMIT,
            CLEAR,
            START,
            ("eli", "succeed", "disabled; the partner is informed"),
            ("ben", "ratify", "The right thing to do."),
        ],
    },
];
