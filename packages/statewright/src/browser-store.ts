/** Entry `statewright/browser/store`: `statewright/store` without SQLite, for browsers and workers. */

export * from "@statewright/core/store";
