/** Channel kinds of `defineState`: the public namespace `channel`. */
// biome-ignore lint/performance/noBarrelFile: the members of the namespace `channel`
export { ephemeral, list, messages, record, reduce, untracked } from "./channel.ts";
