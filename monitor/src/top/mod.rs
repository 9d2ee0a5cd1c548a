//! `orphand top`: the live view in a terminal. It ends nothing itself: the daemon does.
//!
//! A pure core (`State`: keys and looks in, effects and frames out) and a thin shell: the terminal, a loop that sleeps until there
//! is news, and threads that bring it.

mod dialog;
mod draw;
mod past;
mod screen;
mod state;
mod worker;

use std::{
    io,
    sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail};
use ratatui::crossterm::event::{self, Event, KeyEventKind};

use self::{
    screen::Screen,
    state::{Effect, Look, State},
    worker::Ask,
};
use crate::{
    cli::{ExitCode, Places},
    os::start,
    sink::{list::Sample, paint::Paint},
};
use orphand_core::model::ServerReport;

/// Between two questions to the daemon, or whether there is one.
const LOOK_AGAIN: Duration = Duration::from_secs(2);

/// Between a look and the next one because of an event: many events are one look.
const AFTER_EVENT: Duration = Duration::from_millis(250);

/// What an answer or an event does to the view.
type Tell = Box<dyn FnOnce(&mut Shell) + Send>;

enum News {
    /// A key, or another size of the terminal.
    Typed(io::Result<Event>),
    Told(Tell),
    Leave,
}

#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  sudo orphand top
  sudo orphand top --readonly
  orphand top --ascii --socket /run/orphand/control.sock")]
pub struct Flags {
    /// End nothing: `r` is out of use
    #[arg(long)]
    pub readonly: bool,
    /// Draw lines with ASCII alone
    #[arg(long)]
    pub ascii: bool,
    #[command(flatten)]
    pub places: Places,
}

pub fn top(flags: &Flags) -> anyhow::Result<ExitCode> {
    // There is no log: it would be written over the screen.
    let colours = Paint::of(&std::io::stdout()) == Paint::new(true);
    let mut screen = Screen::take()?;
    let (tell, news) = channel();
    screen::watch_signals(tell.clone())?;
    let ask = worker::start(flags.places.clone(), tell.clone())?;
    start("keys", move || read_keys(&tell)).context("cannot read keys")?;
    let state = State::new(Look { colours, ascii: flags.ascii, readonly: flags.readonly });
    let now = Instant::now();
    Shell { state, ask, news, looking: false, looked_at: now, due: now }.run(&mut screen)
}

/// Tells what is typed, until nobody listens or the terminal is gone.
fn read_keys(tell: &Sender<News>) {
    loop {
        let typed = event::read();
        let is_over = typed.is_err();
        if tell.send(News::Typed(typed)).is_err() || is_over {
            return;
        }
    }
}

struct Shell {
    state: State,
    ask: Sender<Ask>,
    news: Receiver<News>,
    looking: bool,
    looked_at: Instant,
    due: Instant,
}

impl Shell {
    fn run(mut self, screen: &mut Screen) -> anyhow::Result<ExitCode> {
        loop {
            if !self.looking && Instant::now() >= self.due {
                self.ask(Ask::Look)?;
                self.looking = true;
            }
            let draw = |frame: &mut ratatui::Frame<'_>| draw::draw(&mut self.state, frame);
            screen.0.draw(draw).context("cannot draw on the terminal")?;
            let mut next = if self.looking {
                self.news.recv().map_err(|_| RecvTimeoutError::Disconnected)
            } else {
                self.news.recv_timeout(self.due.saturating_duration_since(Instant::now()))
            };
            // All that came meanwhile is one frame.
            loop {
                match next {
                    Ok(news) => {
                        if self.take(news, screen)? {
                            return Ok(ExitCode::Done);
                        }
                    }
                    Err(RecvTimeoutError::Timeout) => break,
                    Err(RecvTimeoutError::Disconnected) => bail!("the threads that look have ended"),
                }
                next = self.news.recv_timeout(Duration::ZERO);
            }
        }
    }

    fn ask(&self, question: Ask) -> anyhow::Result<()> {
        self.ask.send(question).context("the thread that looks has ended")
    }

    fn take(&mut self, news: News, screen: &mut Screen) -> anyhow::Result<bool> {
        match news {
            News::Leave => return Ok(true),
            News::Told(tell) => tell(self),
            News::Typed(typed) => {
                let effect = match typed.context("cannot read from the terminal")? {
                    Event::Key(key) if key.kind != KeyEventKind::Release => self.state.key(key),
                    Event::Mouse(mouse) => {
                        self.state.mouse(mouse);
                        None
                    }
                    _ => None,
                };
                match effect {
                    None => {}
                    Some(Effect::Quit) => return Ok(true),
                    Some(Effect::Suspend) => screen.suspend()?,
                    Some(Effect::Ask(question)) => self.ask(question)?,
                    Some(Effect::Copy(text)) => screen::copy(&text)?,
                }
            }
        }
        Ok(false)
    }

    fn looked(&mut self, sample: Sample) {
        self.look_again();
        self.state.update(sample);
    }

    fn saw_nothing(&mut self, why: String) {
        self.look_again();
        self.state.trouble = why;
    }

    fn reaping(&mut self, planned: &[ServerReport]) {
        self.due = Instant::now();
        self.state.reaping(planned);
    }

    fn heard(&mut self, line: String) {
        self.due = self.due.min(self.looked_at + AFTER_EVENT);
        self.state.event(line);
    }

    fn look_again(&mut self) {
        self.looking = false;
        self.looked_at = Instant::now();
        self.due = self.looked_at + LOOK_AGAIN;
    }
}
