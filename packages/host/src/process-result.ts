/** Exit status and output of a process. */
export interface ProcessResult {
  /** Exit code; 128 + n for signal n. */
  readonly exitCode: number;
  /** Terminating signal, such as `SIGTERM`. */
  readonly signal: string | undefined;
  /** `exited`, or the reason for stopping the process. */
  readonly ended: "exited" | "stopped" | "timeout" | "cancelled";
  readonly stdout: string;
  readonly stderr: string;
  /** True when the middle of an output was dropped; the text contains a line with the number of bytes. */
  readonly truncated: boolean;
  readonly droppedBytes: { readonly stdout: number; readonly stderr: number };
  readonly durationMs: number;
}
