/** Options of the AI SDK UI message stream. */
import type { OnBusy } from "@statewright/core";
import {
  checkChoice,
  checkCount,
  checkFlag,
  checkOptions,
  checkStrings,
  listOptionNames,
} from "@statewright/core/adapter";

/** Options of `uiStream`. */
export interface UiStreamOptions {
  /** Handling of a message that arrives while a run of the thread is unfinished. Default `cancel`: the run ends. */
  readonly onBusy?: OnBusy;
  /** Channels whose values are sent as `data-state` after each superstep that changes them. Default: none. */
  readonly state?: readonly string[];
  /** Sends messages that users send to the run at work as `steering-message`, experimental in the AI SDK. Default false. */
  readonly steering?: boolean;
  /** Maximum bytes of a file in a `data:` URL. Default 5 MiB. */
  readonly maxFileBytes?: number;
  /** Maximum bytes of a post. Default 10 MiB: the AI SDK posts the whole conversation, with its files. */
  readonly maxBodyBytes?: number;
}

/** Options with their defaults. */
export type ResolvedUiStreamOptions = Required<UiStreamOptions>;

const names = listOptionNames<UiStreamOptions>({
  onBusy: true,
  state: true,
  steering: true,
  maxFileBytes: true,
  maxBodyBytes: true,
});

const mebibyte = 1_048_576;

/** Checks the options and fills in the defaults. Throws `invalid_option`. */
export function resolveUiStreamOptions(options: UiStreamOptions): ResolvedUiStreamOptions {
  checkOptions("uiStream", options, names);
  const { onBusy = "cancel", state = [], steering = false, maxFileBytes, maxBodyBytes } = options;
  checkChoice("uiStream", { onBusy }, ["reject", "enqueue", "cancel", "rollback"]);
  checkStrings("uiStream", { state });
  checkFlag("uiStream", { steering });
  checkCount("uiStream", { maxFileBytes, maxBodyBytes });
  return {
    onBusy,
    state,
    steering,
    maxFileBytes: maxFileBytes ?? 5 * mebibyte,
    maxBodyBytes: maxBodyBytes ?? 10 * mebibyte,
  };
}
