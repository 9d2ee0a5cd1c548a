//! The data types of orphand: identities, times, kernel events, facts, notices, reports.
//!
//! These types hold plain data that the pure core and the daemon share. Nothing here does I/O.

mod alert;
mod checkup;
mod container;
mod control;
mod decision;
pub mod duration;
mod ending;
mod event;
mod event_kind;
mod event_subject;
mod exchange;
mod explained;
mod fact;
mod family;
mod first_message;
mod hints;
mod history;
mod id;
mod image;
mod inspection;
mod kernel_side;
mod leftover;
mod losses;
mod notice;
mod policy;
mod queued_size;
mod reached_by;
mod reasons;
pub mod redact;
mod report;
mod rule_kind;
mod run;
pub mod scene;
mod session;
mod share;
mod snapshot;
mod state;
pub mod text;
mod time;
mod timeline;
mod trace;
mod unit;
mod view;
mod whereabouts;
mod work;

pub use alert::{AlertRule, AlertRuleError, Watched};
pub use checkup::{Advice, Check, Checkup, Health, Place, UnitCheckup, UnitProperties};
pub use container::{
    Container, ContainerFacts, ContainerId, ContainerNames, ContainerQuery, Enclosing, MadeContainer,
    OtherClient,
};
pub use control::{
    Planned, ReapRequest, ReleaseRequest, Released, Reloaded, SessionsStatus, Status, StuckProcess,
};
pub use decision::{Chosen, Decided, Decision, Pause, Standing};
pub use ending::{Ending, KilledBy, Killer, signal_name};
pub use event::{ExitStatus, ProcessEvent};
pub use event_kind::EventKind;
pub use event_subject::EventSubject;
pub use exchange::{About, Answer, Effect, Input, OwnEnd, Signal, SignalError, Subject, Tracking};
pub use explained::{Asked, Creator, Explained, NextStep, NoServer, Nothing, TakenFor};
pub use fact::{
    End, Fact, Knowledge, RememberedOrphan, RememberedRun, RememberedServer, Tracked, TrackedOwner,
    TrackedStart,
};
pub use first_message::FirstMessage;
pub use hints::{
    AgentHints, FoundHints, SESSION_VARIABLES, ServerHints, hinted_session, shown_path, tmux_pane,
};
pub use history::{
    DaemonLife, History, HistoryQuery, Outcome, PastLoss, PastOrphan, PastRun, PastSignal, ServerCounts,
};
pub use id::ProcessId;
pub use image::{Image, Stdio};
pub use inspection::{CopyFacts, Holder, Memory, ServerFacts};
pub use kernel_side::{Candidate, MemberCount, MemberCountError, RingSize, RingSizeError, SetsidHook};
pub use leftover::{Branch, Holdings, Leftover, LeftoverClass, LeftoverReport};
pub use losses::Losses;
pub use notice::{Class, Mode, Notice};
pub use policy::{Found, Policy, abandoned_grace, recognise_protocol, work_grace};
pub use reached_by::ReachedBy;
pub use reasons::{Doubt, Evidence, Guard};
pub use report::{AgentReport, Report, ServerReport, Totals};
pub use rule_kind::recognised_by;
pub use run::{Run, RunKey, RunReport, RunView};
pub use session::{
    KeyState, RegistryLife, SessionMark, SessionPolicy, SessionState, SessionSubject, SessionsSeen,
    session_id, session_in_arguments, shown_session,
};
pub use share::{KEYS_OF_USER, RUNS_OF_ALL, RUNS_OF_USER, Share};
pub use snapshot::{Snapshot, SnapshotProcess};
pub use state::{NoState, State};
pub use time::BootTime;
pub use timeline::{SERIES, Series, Timeline, TimelineQuery};
pub use trace::{TRACE_FORMAT, TraceEntry, TraceHeader};
pub use unit::{Unit, UnitFacts, UnitState};
pub use view::{AgentView, ProcessView, SHOWN, ServerView};
pub use whereabouts::Whereabouts;
pub use work::Work;
