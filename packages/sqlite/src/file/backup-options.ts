/** Options of `backup`. */
export interface BackupOptions {
  /** Replaces an existing file at the target path. Default: false. */
  readonly overwrite?: boolean;
}
