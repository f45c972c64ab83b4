# From what Snakemake says: how far it is, and for each step that failed its log. The names of these logs go to logs/failed.

/^[0-9]+ of [0-9]+ steps/ { print; fflush(); next }

/^Error in rule/ { rule = $4; sub(":", "", rule); next }

rule != "" && /^    log: / {
    print "FAILED: " rule ", its log: " $2
    print $2 >> "logs/failed"
    fflush()
    rule = ""
    next
}

/^Logfile .*:$/ { lines = 1; next }
lines && /^=====/ { lines = lines == 1 ? 2 : 0; next }
lines { print "    " $0; fflush() }
