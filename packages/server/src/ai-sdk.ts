/** AI SDK UI message stream: `uiStream()` for the option `protocols` of `serve`. */
export { uiStream } from "./ai-sdk/ui-stream.ts";
export type { UiStreamOptions } from "./ai-sdk/ui-stream-options.ts";
