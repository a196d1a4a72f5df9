/** End of a stream whose process stops. */

/**
 * Error of a source that ends before its end, because the process stops. The stream ends with a comment: its client
 * comes back with the number of its last event.
 */
export class StreamDrainedError extends Error {
  constructor() {
    super("the server is stopping. Read again after the last event.");
    this.name = "StreamDrainedError";
  }
}
