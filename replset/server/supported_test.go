package server

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/assaylab/assay/replset/query"
	"github.com/assaylab/assay/replset/query/value"
)

// What MongoDB 7.0 has, by name. What of it is supported is asked of the parsers: what
// they do not support they refuse with 238, or as if it did not exist.
var (
	stageNames = strings.Fields(`$addFields $bucket $bucketAuto $changeStream $changeStreamSplitLargeEvent $collStats $count $currentOp $densify $documents $facet $fill
		$geoNear $graphLookup $group $indexStats $limit $listLocalSessions $listSampledQueries $listSearchIndexes $listSessions $lookup $match $merge $out
		$planCacheStats $project $redact $replaceRoot $replaceWith $sample $search $searchMeta $set $setWindowFields $skip $sort $sortByCount $unionWith $unset
		$unwind $vectorSearch`)
	filterNames = strings.Fields(`$all $and $bitsAllClear $bitsAllSet $bitsAnyClear $bitsAnySet $comment $elemMatch $eq $exists $expr $geoIntersects $geoWithin
		$gt $gte $in $jsonSchema $lt $lte $mod $ne $near $nearSphere $nin $nor $not $or $regex $sampleRate $size $text $type $where`)
	updateNames = strings.Fields(`$addToSet $bit $currentDate $inc $max $min $mul $pop $pull $pullAll $push $rename $set $setOnInsert $unset`)
	expressions = strings.Fields(`$abs $acos $acosh $add $allElementsTrue $and $anyElementTrue $arrayElemAt $arrayToObject $asin $asinh $atan $atan2 $atanh $avg
		$binarySize $bitAnd $bitNot $bitOr $bitXor $bsonSize $ceil $cmp $concat $concatArrays $cond $convert $cos $cosh $dateAdd $dateDiff $dateFromParts
		$dateFromString $dateSubtract $dateToParts $dateToString $dateTrunc $dayOfMonth $dayOfWeek $dayOfYear $degreesToRadians $divide $eq $exp $filter
		$first $firstN $floor $function $getField $gt $gte $hour $ifNull $in $indexOfArray $indexOfBytes $indexOfCP $isArray $isNumber $isoDayOfWeek $isoWeek
		$isoWeekYear $last $lastN $let $literal $ln $log $log10 $lt $lte $ltrim $map $max $maxN $median $mergeObjects $meta $millisecond $min $minN $minute $mod
		$month $multiply $ne $not $objectToArray $or $percentile $pow $radiansToDegrees $rand $range $reduce $regexFind $regexFindAll $regexMatch $replaceAll
		$replaceOne $reverseArray $round $rtrim $sampleRate $second $setDifference $setEquals $setField $setIntersection $setIsSubset $setUnion $sin $sinh
		$size $slice $sortArray $split $sqrt $stdDevPop $stdDevSamp $strLenBytes $strLenCP $strcasecmp $substr $substrBytes $substrCP $subtract $sum $switch
		$tan $tanh $toBool $toDate $toDecimal $toDouble $toInt $toLong $toLower $toObjectId $toString $toUpper $trim $trunc $tsIncrement $tsSecond $type
		$unsetField $week $year $zip`)
	accumulators = strings.Fields(`$accumulator $addToSet $avg $bottom $bottomN $count $first $firstN $last $lastN $max $maxN $median $mergeObjects $min $minN
		$percentile $push $stdDevPop $stdDevSamp $sum $top $topN`)
)

// sorted says of each name whether parsing it fails as something that is not there.
func sorted(names []string, parse func(name string) error) (yes, no []string) {
	for _, name := range names {
		if err := parse(name); isAbsent(err) {
			no = append(no, name)
		} else {
			yes = append(yes, name)
		}
	}
	return yes, no
}

func isAbsent(err error) bool {
	if err == nil {
		return false
	}
	e := asError(err)
	switch e.Code {
	case codeNotImplemented, 40324, 168, 15952:
		return true
	}
	return strings.Contains(strings.ToLower(e.Message), "unknown") && strings.Contains(e.Message, "$")
}

func one(name string, v query.Value) document { return newDoc().AppendValue(name, v).Build() }

func supportedPage() string {
	var b strings.Builder
	b.WriteString("# What the replica set supports\n\nMade by a test of `replset/server` from the code's own tables; do not edit. `ASSAY_UPDATE=1 go test ./replset/server -run Supported` writes it anew.\n" +
		"What is named as refused gets error 238, what is not named is unknown here and to MongoDB 7.0 and gets the\nerror that it gives for that. Nothing is ever ignored.\n\n")
	b.WriteString("## Commands\n\n| command | fields beside the common ones |\n|---|---|\n")
	table := commandTable()
	slices.SortFunc(table, func(x, y *command) int { return strings.Compare(x.name, y.name) })
	for _, c := range table {
		fields := append([]string(nil), c.fields...)
		slices.Sort(fields)
		list := strings.Join(fields, ", ")
		if c.anyField {
			list = "any"
		}
		fmt.Fprintf(&b, "| %s | %s |\n", strings.Join(append([]string{c.name}, c.aliases...), ", "), list)
	}
	fmt.Fprintf(&b, "\nCommon fields: %s.\n", strings.Join(generic, ", "))
	part := func(title string, names []string, parse func(string) error) {
		yes, no := sorted(names, parse)
		fmt.Fprintf(&b, "\n## %s\n\n%s\n", title, strings.Join(yes, " "))
		if len(no) > 0 {
			fmt.Fprintf(&b, "\nRefused: %s\n", strings.Join(no, " "))
		}
	}
	arg := value.Doc(emptyDoc)
	vars, _ := query.NewVars(nil, query.System{})
	part("Stages", stageNames, func(name string) error {
		_, err := query.ParsePipeline(value.ArrayOf([]query.Value{value.Doc(one(name, arg))}), query.PipelineOptions{Vars: vars, SourceStages: []string{listLocalSessions, changeStreamStage}})
		return err
	})
	part("Query operators", filterNames, func(name string) error {
		_, top := query.ParseFilter(one(name, arg), vars)
		_, below := query.ParseFilter(one("x", value.Doc(one(name, arg))), vars)
		if !isAbsent(top) {
			return top
		}
		return below
	})
	part("Update operators", updateNames, func(name string) error {
		_, err := query.ParseUpdate(value.Doc(one(name, arg)), query.UpdateOptions{Vars: vars})
		return err
	})
	part("Expressions", expressions, func(name string) error {
		_, err := query.ParseFilter(one("$expr", value.Doc(one(name, arg))), vars)
		return err
	})
	part("Accumulators", accumulators, func(name string) error {
		group := newDoc().AppendNull("_id").AppendDocument("x", one(name, arg)).Build()
		_, err := query.ParsePipeline(value.ArrayOf([]query.Value{value.Doc(one("$group", value.Doc(group)))}), query.PipelineOptions{Vars: vars})
		return err
	})
	return b.String()
}

func TestTheListOfWhatIsSupportedIsCurrent(t *testing.T) {
	path := filepath.Join("..", "..", "docs", "replset-supported.md")
	want := supportedPage()
	if os.Getenv("ASSAY_UPDATE") != "" {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s is not what the code supports; ASSAY_UPDATE=1 go test ./replset/server -run Supported writes it", path)
	}
	for _, must := range []string{"$changeStream", "| find |", "$jsonSchema"} {
		if !strings.Contains(want, must) {
			t.Errorf("%s is not on the page", must)
		}
	}
}
