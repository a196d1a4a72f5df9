/** Watches the open interrupts of a tenant. */
import type { Page, RunView, WaitingView } from "./caller-service.ts";

/** Change of the open interrupts: what is open at first, then each that opens or closes. */
export type InterruptChange =
  | { readonly type: "snapshot"; readonly page: Page<WaitingView> }
  | { readonly type: "opened"; readonly interrupt: WaitingView }
  | { readonly type: "closed"; readonly id: string; readonly thread: string };

/** Acts that wait. */
export interface WaitActs {
  /** Yields the newest open interrupts, then their changes until the signal fires. */
  watchInterrupts(signal: AbortSignal): Promise<AsyncIterable<InterruptChange>>;
  /** Row of a run when it rests or has ended; undefined when `ms` milliseconds pass first, or the signal fires. */
  waitForRest(run: string, limits: { readonly ms: number; readonly signal: AbortSignal }): Promise<RunView | undefined>;
}
