/** Arrivals of inbox messages at a run with a store, from any process. */

/** The inbox is read again when the version has changed since the last read. */
export interface Arrivals {
  version: number;
}
