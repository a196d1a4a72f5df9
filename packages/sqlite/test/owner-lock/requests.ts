/** Requests to the other process and its answers. */

export interface Request {
  readonly do: "act" | "work" | "write" | "check";
  readonly file: string;
  readonly action?: string;
}

/** Result codes of the other process: `ok`, the code of an error, or `none`. */
export interface Work {
  readonly opened: string;
  readonly owned: string;
  readonly own: string;
}

export interface Check {
  readonly opened: string;
  readonly owned: readonly string[];
  readonly own: readonly string[];
  readonly integrity: string;
}
