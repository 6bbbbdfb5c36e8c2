//! Statements that go out together: each is sent in order before the first answer is awaited.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

/// A statement that was not sent yet.
pub(super) type Unsent<'s, T> = Pin<Box<dyn Future<Output = T> + Send + 's>>;

/// Sends all of them in this order, and returns their answers in the same order. A statement is sent when it is first
/// polled.
pub(super) async fn in_order<T>(mut unsent: Vec<Unsent<'_, T>>) -> Vec<T> {
    let mut answers: Vec<Option<T>> = unsent.iter().map(|_| None).collect();
    poll_fn(|context| {
        let mut are_all_there = true;
        for (future, answer) in unsent.iter_mut().zip(&mut answers) {
            if answer.is_none() {
                match future.as_mut().poll(context) {
                    Poll::Ready(value) => *answer = Some(value),
                    Poll::Pending => are_all_there = false,
                }
            }
        }
        if are_all_there { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    answers.into_iter().flatten().collect()
}
