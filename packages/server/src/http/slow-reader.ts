/** Failure of a stream whose reader does not read. */

/**
 * Error of a source that has dropped a reader with too many waiting events. The connection is cut without a last frame:
 * its client comes back with the number of its last event.
 */
export class SlowReaderError extends Error {
  constructor() {
    super("a reader of events did not read. Read again after the last event.");
    this.name = "SlowReaderError";
  }
}
